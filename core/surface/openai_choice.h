/* tool_choice of the two OpenAI forms: what the client forces or allows, and what becomes of it turn by turn. */
#ifndef SANDGATE_SURFACE_OPENAI_CHOICE_H
#define SANDGATE_SURFACE_OPENAI_CHOICE_H

#include "surface/body_edit.h"

enum tool_choice_kind {
    TOOL_CHOICE_LEFT, /* absent, auto, or something that is not ours to understand */
    TOOL_CHOICE_NONE,
    TOOL_CHOICE_REQUIRED,
    TOOL_CHOICE_OURS,   /* a hosted tool is forced */
    TOOL_CHOICE_CLIENT, /* a tool of the client's own is forced */
    TOOL_CHOICE_ALLOWED /* a list of allowed tools */
};

struct tool_choice {
    const struct json_member *member; /* `tool_choice` in the body; NULL: absent */
    enum tool_choice_kind kind;
    size_t offer;           /* OURS */
    bool mode_required;     /* ALLOWED */
    struct json_value mode; /* ALLOWED; raw is empty if absent */
    struct json_value list; /* ALLOWED */
    struct json_value
        *tools; /* ALLOWED: the elements of the list, and the offer that each names or -1 */
    int *tool_offers;
    size_t tools_count;
};

/* Is this tool type, or name of a hosted tool, one that the offer answers, in the words of OpenAI's two forms? */
bool openai_offer_answers(const struct surface_offer *, struct str type);
/* … is there one among them? */
bool openai_offers_answer(const struct surface_offer *, size_t count, struct str type);
/* The kinds that the OpenAI forms have native shapes for, ended by NULL. */
extern const char *const openai_kinds[];

/* Reads `choice->member`. Fails on duplicate keys. */
int openai_choice_read(struct tool_choice *, const struct tool_set *, struct arena *,
                       struct sg_error *err);
/* The value of tool_choice for a turn. `is_flat`: the form of Responses ({"type":"function","name":…}), else that of chat
 * ({"type":"function","function":{"name":…}}). */
void openai_choice_edit(struct body_edit *, const struct tool_choice *, const struct tool_set *,
                        const struct surface_turn_options *, bool call_made, bool is_flat);

#endif
