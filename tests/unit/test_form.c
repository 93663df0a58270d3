/* core/http/form.h: one field of a form, and each form in which another reader could find another one. */
#include "base/check.h"
#include "cunit_main.h"
#include "http/form.h"

#define TYPE "multipart/form-data; boundary=b"
#define MODEL "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nmock\r\n"
#define FILE_PART                                                                             \
    "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\\\\ \xC3\xA4;x\"\r\n" \
    "Content-Type: audio/wav\r\n\r\n\x01 name=\"model\"\r\n\r\nother\r\n--bb\r\n"
#define END "--b--\r\n"

static void the_field_is_found_wherever_it_stands(void)
{
    static const struct {
        const char *type, *body, *value; /* NULL: there is none */
    } cases[] = {
        {TYPE, MODEL END, "mock"},
        {TYPE, "--b\r\nContent-Disposition: form-data; name=x\r\n\r\n\r\n" MODEL "--b--", "mock"},
        {TYPE, "--b\r\nX: y\r\ncontent-disposition:form-data;name=model\r\n\r\n\r\n" END, ""},
        {TYPE, "--b\r\nContent-Disposition: form-data; name=\"Model\"\r\n\r\nmock\r\n" END, NULL},
        {TYPE, "--b--\r\n", NULL},
        {"Multipart/Form-Data;charset=utf-8; Boundary=\"b\"", MODEL END, "mock"},
        {"multipart/form-data; boundary=\"a b\"",
         "--a b\r\nContent-Disposition: form-data; name=model\r\n\r\nmo--ck\r\n--a b--", "mo--ck"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct str value = STR("untouched");
        struct sg_error err = {0};
        CU_ASSERT_TRUE(form_is(str_of(cases[i].type)));
        CU_ASSERT_EQUAL_FATAL(
            form_field(str_of(cases[i].type), str_of(cases[i].body), "model", &value, &err), 0);
        CU_ASSERT_EQUAL(value.data == NULL, cases[i].value == NULL);
        CU_ASSERT_TRUE(str_eq(value, str_of(cases[i].value)));
    }
    CU_ASSERT_FALSE(form_is(STR("multipart/mixed; boundary=b")));
    CU_ASSERT_FALSE(form_is(STR("multipart/form-datax")));
    CU_ASSERT_FALSE(form_is((struct str){NULL, 0}));
}

static void what_could_be_read_in_two_ways_is_refused(void)
{
    static const struct {
        const char *type, *body, *message;
    } cases[] = {
        {"multipart/form-data", MODEL END, "needs one 'boundary' of 1 to 70 characters"},
        {"multipart/form-data; boundary=", MODEL END, "needs one 'boundary'"},
        {"multipart/form-data; boundary=b; boundary=c", MODEL END, "needs one 'boundary'"},
        {"multipart/form-data; boundary=\"b", MODEL END, "needs one 'boundary'"},
        {"multipart/form-data; boundary=b x", MODEL END, "needs one 'boundary'"},
        {"multipart/form-data; boundary="
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         MODEL END, "needs one 'boundary'"},
        {TYPE, "", "does not start with its boundary"},
        {TYPE, "before\r\n" MODEL END, "does not start with its boundary"},
        {TYPE, MODEL "--bx\r\n\r\n" END, "has its boundary where no line ends behind it"},
        {TYPE, MODEL "--b \r\n" END, "has its boundary where no line ends behind it"},
        {TYPE, MODEL "--b\n" END, "has its boundary where no line ends behind it"},
        {TYPE, MODEL, "has no boundary at its end"},
        {TYPE, MODEL MODEL END, "has the field 'model' twice"},
        {TYPE, MODEL END "x", "has bytes behind its end"},
        {TYPE, MODEL END MODEL END, "has bytes behind its end"},
        {TYPE, FILE_PART END, "has its boundary where no line ends behind it"},
        {TYPE, "--b\r\nContent-Disposition: form-data; name=x\r\n\r\nx\n--b\r\n" END,
         "has its boundary within a line"},
        {TYPE, "--b\r\nContent-Disposition: form-data; name=x\r\n" END,
         "has a part without an empty line behind its headers"},
        {TYPE, "--b\r\n\r\nx\r\n" END, "has a part without exactly one Content-Disposition"},
        {TYPE,
         "--b\r\nContent-Disposition: form-data; name=x\r\nContent-Disposition: form-data; "
         "name=model\r\n\r\nx\r\n" END,
         "has a part without exactly one Content-Disposition"},
        {TYPE, "--b\r\nContent-Disposition: form-data; name=x\r\n ; y=z\r\n\r\nx\r\n" END,
         "has a part with a broken header"},
        {TYPE, "--b\r\nContent-Disposition: form-data; name=x\nY: z\r\n\r\nx\r\n" END,
         "has a part with a broken header"},
        {TYPE, "--b\r\nX\r\n\r\nx\r\n" END, "has a part with a broken header"},
        {TYPE, "--b\r\nContent-Disposition : form-data; name=x\r\n\r\nx\r\n" END,
         "has a part with a broken header"},
        {TYPE, "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n" END, "does not name one field"},
        {TYPE, "--b\r\nContent-Disposition: attachment; name=x\r\n\r\nx\r\n" END,
         "does not name one field"},
        {TYPE, "--b\r\nContent-Disposition: form-data; name=x; name=model\r\n\r\nx\r\n" END,
         "does not name one field"},
        {TYPE,
         "--b\r\nContent-Disposition: form-data; name=\"x\\\"; name=\\\"model\"\r\n\r\nx\r\n" END,
         "does not name one field"},
        {TYPE, "--b\r\nContent-Disposition: form-data; name=x y\r\n\r\nx\r\n" END,
         "does not name one field"},
        {TYPE, "--b\r\nContent-Disposition: form-data; name=x; name*=utf-8''model\r\n\r\nx\r\n" END,
         "has a part with 'name*', which is not for forms"},
        {TYPE, "--b\r\nContent-Disposition: form-data; name=model; filename=x\r\n\r\nx\r\n" END,
         "has the field 'model' as a file, or coded"},
        {TYPE,
         "--b\r\nContent-Disposition: form-data; name=model; filename*=utf-8''x\r\n\r\nx\r\n" END,
         "has the field 'model' as a file, or coded"},
        {TYPE,
         "--b\r\nContent-Disposition: form-data; name=model\r\nContent-Transfer-Encoding: "
         "base64\r\n"
         "\r\nbW9jaw==\r\n" END,
         "has the field 'model' as a file, or coded"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct str value = STR("untouched");
        struct sg_error err = {0};
        int rc = form_field(str_of(cases[i].type), str_of(cases[i].body), "model", &value, &err);
        if (rc != SG_E_INVALID || strstr(err.message, cases[i].message) == NULL ||
            !str_is(value, "untouched")) {
            printf("\n%zu: %d '%s', not '%s'\n", i, rc, err.message, cases[i].message);
            CU_FAIL("a bad form");
        }
    }
}

static void a_field_within_a_file_is_none(void)
{
    struct str value = {NULL, 0};
    struct sg_error err = {0};
    struct str body =
        STR("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n"
            "\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nother\0\r\n" MODEL END);
    CU_ASSERT_EQUAL_FATAL(form_field(STR(TYPE), body, "model", &value, &err), 0);
    CU_ASSERT_TRUE(str_is(value, "mock"));
}

static void parameters_of_a_type_are_read(void)
{
    struct str value;
    CU_ASSERT_TRUE(media_parameter(STR("a/b; Charset=\"utf-8\" ;x=y;"), "charset", &value));
    CU_ASSERT_TRUE(str_is(value, "utf-8"));
    CU_ASSERT_TRUE(media_parameter(STR("a/b"), "charset", &value));
    CU_ASSERT_PTR_NULL(value.data);
    CU_ASSERT_TRUE(media_parameter((struct str){NULL, 0}, "charset", &value));
    static const char *const broken[] = {"a/b; charset", "a/b; charset=", "a/b; =x",
                                         "a/b;; x=y",    "a/b; x=y z",    "a/b; x=\"y",
                                         "a/b; x=1; X=2"};
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        CU_ASSERT_FALSE(media_parameter(str_of(broken[i]), "x", &value));
    }
}

static const struct test tests[] = {
    TEST(the_field_is_found_wherever_it_stands),
    TEST(what_could_be_read_in_two_ways_is_refused),
    TEST(a_field_within_a_file_is_none),
    TEST(parameters_of_a_type_are_read),
};

int main(int argc, char **argv)
{
    return run_tests("form", tests, COUNT_OF(tests), argc, argv);
}
