/* What the two OpenAI forms have in common: words of tool_choice, strict looks at members and metadata, errors. */
#include "openai.h"

#include "strict.h"

#include <stdio.h>

void openai_read_model(struct conversation *c, struct problem *problem)
{
    const cJSON *model = json_member(c->request, "model");
    if (!cJSON_IsString(model)) {
        problem_set(problem, "model", NULL, "you must provide a model parameter");
    }
    c->model = cJSON_IsString(model) ? model->valuestring : "";
}

void openai_read_mode(struct conversation *c, const cJSON *mode)
{
    c->choice = json_is(mode, "none")       ? CHOICE_NONE
                : json_is(mode, "required") ? CHOICE_REQUIRED
                                            : CHOICE_AUTO;
}

/* ---- what is refused ---- */

void openai_missing(const char *path, struct problem *problem)
{
    problem_set(problem, path, "missing_required_parameter", "Missing required parameter: '%s'.",
                path);
}

void openai_check_members(const cJSON *object, const char *where, const char *const *names,
                          struct problem *problem)
{
    char path[128];
    const char *dot = where[0] == '\0' ? "" : ".";
    if (!cJSON_IsObject(object)) {
        problem_set(problem, where, NULL, "'%s' must be an object.", where);
        return;
    }
    const cJSON *unknown = json_unknown(object, names), *repeated = json_repeated(object);
    if (unknown != NULL) {
        snprintf(path, sizeof path, "%s%s%.60s", where, dot, unknown->string);
        problem_set(problem, path, "unknown_parameter", "Unknown parameter: '%s'.", path);
    }
    if (repeated != NULL) {
        snprintf(path, sizeof path, "%s%s%.60s", where, dot, repeated->string);
        problem_set(problem, path, "duplicate_parameter", "Duplicate parameter: '%s'.", path);
    }
}

void openai_check_mode(const cJSON *mode, const char *where, struct problem *problem)
{
    static const char *const words[] = {"none", "auto", "required", NULL};
    if (!cJSON_IsString(mode) || !name_is_among(mode->valuestring, words)) {
        problem_set(problem, where, "invalid_value",
                    "Invalid value: '%.60s'. Supported values are: 'none', 'auto' and 'required'.",
                    cJSON_IsString(mode) ? mode->valuestring : "(none)");
    }
}

static void check_metadata_member(const cJSON *member, struct problem *problem)
{
    char path[96];
    snprintf(path, sizeof path, "metadata.%.64s", member->string);
    if (!cJSON_IsString(member) && !cJSON_IsNull(member)) {
        problem_set(problem, path, NULL, "Invalid type for '%s': expected a string.", path);
    } else if (strlen(member->string) > 64 ||
               (cJSON_IsString(member) && strlen(member->valuestring) > 512)) {
        problem_set(problem, path, NULL, "'%s' is too long.", path);
    } else if (is_control_key(member->string)) {
        problem_set(problem, path, "unknown_parameter", "Unknown parameter: '%s'.", path);
    }
}

void openai_check_metadata(const cJSON *metadata, struct problem *problem)
{
    const cJSON *member;
    if (metadata != NULL && !cJSON_IsObject(metadata) && !cJSON_IsNull(metadata)) {
        problem_set(problem, "metadata", NULL, "'metadata' must be an object.");
        return;
    }
    cJSON_ArrayForEach(member, metadata)
    {
        check_metadata_member(member, problem);
    }
    if (cJSON_GetArraySize(metadata) > 16) {
        problem_set(problem, "metadata", NULL, "'metadata' has more than 16 members.");
    }
}

/* ---- errors ---- */

const char *openai_error_type(int status)
{
    return status == 429   ? "rate_limit_error"
           : status == 401 ? "authentication_error"
           : status >= 500 ? "server_error"
                           : "invalid_request_error";
}

void openai_put_error(const struct problem *problem, int status, struct text *out)
{
    text_puts(out, "{\"message\":");
    text_put_json_string(out, &problem->message);
    text_printf(out, ",\"type\":\"%s\",\"param\":", openai_error_type(status));
    if (problem->param[0] == '\0') {
        text_puts(out, "null");
    } else {
        text_json(out, problem->param, strlen(problem->param));
    }
    text_puts(out, ",\"code\":");
    if (problem->code == NULL) {
        text_puts(out, "null}");
    } else {
        text_printf(out, "\"%s\"}", problem->code);
    }
}

void openai_write_error(const struct problem *problem, int status, struct text *out)
{
    text_puts(out, "{\"error\":");
    openai_put_error(problem, status, out);
    text_puts(out, "}");
}
