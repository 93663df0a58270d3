/* Dates as search services write them: "2024-03-05T10:00:00Z", "Mar 5, 2024", "Tue, 05 Mar 2024 10:00:00 GMT", "3 days ago".
 * What is not known to the day ("2 months ago", "2024") is no date. */
#include "search_answer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define DAY_S 86400

static void put_date(char ret[SEARCH_DATE_SIZE], int year, int month, int day)
{
    (void)snprintf(ret, SEARCH_DATE_SIZE, "%04u-%02u-%02u", (unsigned)year % 10000,
                   (unsigned)month % 100, (unsigned)day % 100); /* fits */
}

static void put_time(char ret[SEARCH_DATE_SIZE], int64_t seconds)
{
    struct tm parts;
    time_t at = (time_t)seconds;
    if (gmtime_r(&at, &parts) != NULL) {
        put_date(ret, parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
    }
}

void search_date_before(int64_t now_s, int days, char ret[SEARCH_DATE_SIZE])
{
    put_date(ret, 1970, 1, 1);
    put_time(ret, now_s - (int64_t)days * DAY_S);
}

static bool is_date(int year, int month, int day)
{
    static const int days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return year >= 1000 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 &&
           day <= days[month - 1];
}

/* So many digits and no more; -1 if they are not there. */
static int number_at(const char *text, size_t digits)
{
    int value = 0;
    if (strspn(text, "0123456789") != digits) {
        return -1;
    }
    for (size_t i = 0; i < digits; i++) {
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

static bool read_iso(const char *text, char ret[SEARCH_DATE_SIZE])
{
    int year = number_at(text, 4);
    int month = year >= 0 && text[4] == '-' ? number_at(text + 5, 2) : -1;
    int day = month >= 0 && text[7] == '-' ? number_at(text + 8, 2) : -1;
    if (!is_date(year, month, day)) {
        return false;
    }
    put_date(ret, year, month, day);
    return true;
}

static int month_of(const char *word, size_t len)
{
    static const char *const names[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};
    for (int i = 0; len >= 3 && i < 12; i++) {
        if (strncasecmp(word, names[i], len) == 0) {
            return i + 1;
        }
    }
    return 0;
}

/* A day, a month's name and a year, in any order; the day before the year. */
static bool read_words(const char *text, char ret[SEARCH_DATE_SIZE])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    int year = 0, month = 0, day = 0;
    while (*text != '\0' && year == 0) {
        size_t digits = strspn(text, "0123456789"), len = strspn(text, letters);
        if (digits == 4 && day > 0) {
            year = number_at(text, 4);
        } else if ((digits == 1 || digits == 2) && day == 0) {
            day = number_at(text, digits);
        } else if (len > 0 && month == 0) {
            month = month_of(text, len);
        }
        text += digits + len > 0 ? digits + len : 1;
    }
    if (!is_date(year, month, day)) {
        return false;
    }
    put_date(ret, year, month, day);
    return true;
}

/* "5 hours ago". */
static bool read_age(const char *text, int64_t now_s, char ret[SEARCH_DATE_SIZE])
{
    static const struct {
        const char *name;
        int seconds;
    } units[] = {{"minute", 60}, {"min", 60}, {"hour", 3600}, {"day", DAY_S}};
    size_t digits = strspn(text, "0123456789");
    if (digits < 1 || digits > 3 || text[digits] != ' ') {
        return false;
    }
    const char *unit = text + digits + 1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t len = strlen(units[i].name);
        const char *behind = unit + len;
        if (strncasecmp(unit, units[i].name, len) == 0) {
            behind += *behind == 's';
            if (strcasecmp(behind, " ago") == 0) {
                search_date_before(now_s - (int64_t)number_at(text, digits) * units[i].seconds, 0,
                                   ret);
                return true;
            }
        }
    }
    return false;
}

bool search_date(const char *text, int64_t now_s, char ret[SEARCH_DATE_SIZE])
{
    return read_iso(text, ret) || read_age(text, now_s, ret) || read_words(text, ret);
}
