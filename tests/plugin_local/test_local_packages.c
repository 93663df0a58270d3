/* What the packages that people use show: arrays, tables and figures, with the real numpy, pandas and matplotlib where the
 * machine has them under /usr (python3-numpy, python3-pandas, python3-matplotlib); else skipped. */
#include "fixture.h"

#include <unistd.h>

#define PACKAGES "/usr/lib/python3/dist-packages/"

static bool are_there(void)
{
    return access(PACKAGES "numpy", R_OK) == 0 && access(PACKAGES "pandas", R_OK) == 0 &&
           access(PACKAGES "matplotlib", R_OK) == 0;
}

static void table_body(void)
{
    exec_for("import numpy as np, pandas as pd\nprint(np.arange(3))\n"
             "pd.DataFrame({'a': [1, 2], 'b': ['x', None]})",
             60000);
    EXPECT_TEXT(o.out.data, "[0 1 2]\n");
    EXPECT_PART(o.results.data, "{\"text/plain\":\"   a     b\\n0  1     x\\n1  2  None\"");
    EXPECT_PART(o.results.data, "\"text/html\":\"<div>");
    EXPECT_PART(o.results.data, "<td>None</td>");
    exec("display(pd.Series([1.5])); 7");
    EXPECT_PART(o.results.data, "{\"text/plain\":\"0    1.5\\ndtype: float64\"}\n"
                                "{\"text/plain\":\"7\"}");
    exec("df = pd.DataFrame({'a': [1]}); df['b']");
    EXPECT_PART(o.exception.data, "\"name\":\"KeyError\"");
    EXPECT_RUN("len(df)", "[result]{\"text/plain\":\"1\"}");
}

static void arrays_and_tables_are_shown_as_text_and_html(void)
{
    with_box(table_body);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        count++;
    }
    return count;
}

static void figure_body(void)
{
    exec_for("import matplotlib.pyplot as plt\nplt.plot([1, 3]);\nplt.show()\nprint('drawn')",
             60000);
    EXPECT_TEXT(o.error.message, "");
    EXPECT_TEXT(o.out.data, "drawn\n");
    EXPECT_TEXT(o.err.data, ""); /* no warning that nothing can be shown */
    EXPECT_PART(o.results.data, "\"image/png\":\"iVBORw0KGgo");
    CU_ASSERT_EQUAL(count_of(o.results.data, "image/png"), 1);
    exec("fig, axes = plt.subplots(1, 2)\nfig"); /* the last value, and open: shown once */
    CU_ASSERT_EQUAL(count_of(o.results.data, "image/png"), 1);
    exec("from matplotlib.figure import Figure\nf = Figure(); f.subplots().plot([1]); display(f)");
    CU_ASSERT_EQUAL(count_of(o.results.data, "image/png"), 1); /* though pyplot has no part in it */
    exec("plt.rcParams['savefig.format'] = 'svg'\nplt.bar(['a'], [1]); plt.figure();");
    EXPECT_PART(o.results.data, "\"image/svg+xml\":\"<?xml");
    CU_ASSERT_EQUAL(count_of(o.results.data, "\"image/svg+xml\":\"<?xml"), 2);
    CU_ASSERT_EQUAL(count_of(o.results.data, "image/png"), 0);
    EXPECT_RUN("plt.get_fignums()", "[result]{\"text/plain\":\"[]\"}");
}

static void figures_are_shown_once_without_being_asked_for(void)
{
    with_box(figure_body);
}

static const struct test tests[] = {
    TEST(arrays_and_tables_are_shown_as_text_and_html),
    TEST(figures_are_shown_once_without_being_asked_for),
};

int main(int argc, char **argv)
{
    if (!are_there()) {
        fprintf(stderr, "skipped: there is no numpy, pandas or matplotlib under /usr\n");
        return 77;
    }
    return run_tests("local_packages", tests, COUNT_OF(tests), argc, argv);
}
