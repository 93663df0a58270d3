/* Searches on the messages surface, for its tests: what a model calls, what is found, how it is shown. */
#ifndef TESTS_SUPPORT_MESSAGES_SEARCH_H
#define TESTS_SUPPORT_MESSAGES_SEARCH_H

#include "messages_bench.h"

#define ZEROS "00000000000000000000000000000000"
#define SEARCH_STREAM HEAD "\"stream\":true," USER ",\"tools\":[" SEARCH_TOOL "]}"
#define SEARCH_JSON HEAD USER ",\"tools\":[" SEARCH_TOOL "]}"
#define SEARCH_CALL(index, id, query) \
    CALL(index, id, "web_search", "{\\\"query\\\":\\\"" query "\\\"}")
#define ANSWER(content, reason)                                                        \
    "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m-1\"," \
    "\"content\":[" content "],\"stop_reason\":\"" reason                              \
    "\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":10,\"output_tokens\":5}}"
#define USE(id, name, input) \
    "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":" input "}"
#define SAY(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define SEARCH_USE(id) USE(id, "web_search", "{\"query\":\"q\"}")
#define SEARCH_ANSWER ANSWER(SEARCH_USE("t1"), "tool_use")

#define HIT(title, url, more) "{\"title\":\"" title "\",\"url\":\"" url "\"" more "}"
#define HIT_A HIT("A", "https://a.test/x", ",\"snippet\":\"Of \\u00e4 and b.\",\"date\":\"2 days\"")
#define HIT_B HIT("B", "https://b.test/y", ",\"snippet\":\"\",\"date\":null")
#define SHOWN_A                                                                     \
    "{\"type\":\"web_search_result\",\"title\":\"A\",\"url\":\"https://a.test/x\"," \
    "\"encrypted_content\":\"sandgate:Of \xc3\xa4 and b.\",\"page_age\":\"2 days\"}"
#define SHOWN_B                                                                     \
    "{\"type\":\"web_search_result\",\"title\":\"B\",\"url\":\"https://b.test/y\"," \
    "\"encrypted_content\":\"\",\"page_age\":null}"
#define CITES_A                                                                              \
    "{\"type\":\"web_search_result_location\",\"url\":\"https://a.test/x\",\"title\":\"A\"," \
    "\"cited_text\":\"Of \xc3\xa4 and b.\",\"encrypted_index\":\"\"}"
#define CITES_B                                                                              \
    "{\"type\":\"web_search_result_location\",\"url\":\"https://b.test/y\",\"title\":\"B\"," \
    "\"cited_text\":\"\",\"encrypted_index\":\"\"}"

#define SHOWN_CALL(id, name, input)                                                          \
    "{\"type\":\"server_tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":" input \
    ",\"caller\":{\"type\":\"direct\"}}"
#define SHOWN_RESULT(id, name, content)                                                  \
    "{\"type\":\"" name "_tool_result\",\"tool_use_id\":\"" id "\",\"content\":" content \
    ",\"caller\":{\"type\":\"direct\"}}"

/* The call has found these hits: JSON texts, ended by NULL. */
static inline void bench_found(struct bench *b, size_t call, const char *const *hits)
{
    struct surface_output outputs[16];
    size_t count = 0;
    for (; hits[count] != NULL; count++) {
        outputs[count] = (struct surface_output){SG_OUT_HIT, str_of(hits[count])};
    }
    bench_result_of(b, call,
                    (struct surface_result){.status = SURFACE_CALL_COMPLETED,
                                            .model_text = STR("found"),
                                            .outputs = outputs,
                                            .outputs_count = count});
}
#define FOUND(b, call, ...) bench_found(b, call, (const char *const[]){__VA_ARGS__, NULL})
#define FOUND_NOTHING(b, call) bench_found(b, call, (const char *const[]){NULL})

#endif
