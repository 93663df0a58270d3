/* The streams of the model server in each API form: what opens one, a chunk with its time, what ends one. */
#ifndef SANDGATE_BENCH_FORMS_H
#define SANDGATE_BENCH_FORMS_H

struct form {
    const char *model;              /* as the request names it */
    const char *open, *chunk, *end; /* whole events; in the chunk its time as TIME */
};

#define TIME "0000000000000000000" /* nanoseconds: as many digits */
#define EVENT(json) "data: " json "\n\n"
#define NAMED(name, more) "event: " name "\ndata: {\"type\":\"" name "\"" more "}\n\n"
#define CHAT(delta, finish)                                                                     \
    EVENT("{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1764400000," \
          "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{" delta                         \
          "},\"logprobs\":null,\"finish_reason\":" finish "}]}")
#define RESPONSE(status, output, usage)                                                   \
    ",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"created_at\":1764400000," \
    "\"status\":\"" status "\",\"model\":\"m\",\"output\":[" output "],\"usage\":" usage "}"
#define MESSAGE(status, content)                                                               \
    "{\"id\":\"msg_1\",\"type\":\"message\",\"status\":\"" status "\",\"role\":\"assistant\"," \
    "\"content\":[" content "]}"
#define PART "{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"words\"}"
#define WITHIN ",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0"

/* On responses the time stands beside the text, which is told again at the end. */
static const struct form forms[] = {
    {"stream", "", CHAT("\"role\":\"assistant\",\"content\":\"@" TIME "@ word\"", "null"),
     CHAT("", "\"stop\"") EVENT("[DONE]")},
    {"stream-responses",
     NAMED("response.created", RESPONSE("in_progress", "", "null")) NAMED(
         "response.output_item.added", ",\"output_index\":0,\"item\":" MESSAGE("in_progress", ""))
         NAMED("response.content_part.added",
               WITHIN ",\"part\":{\"type\":\"output_text\",\"annotations\":[],\"text\":\"\"}"),
     NAMED("response.output_text.delta",
           WITHIN ",\"delta\":\"word \",\"logprobs\":[],\"obfuscation\":\"@" TIME "@\""),
     NAMED("response.output_text.done", WITHIN ",\"text\":\"words\",\"logprobs\":[]")
         NAMED("response.content_part.done", WITHIN ",\"part\":" PART)
             NAMED("response.output_item.done",
                   ",\"output_index\":0,\"item\":" MESSAGE("completed", PART))
                 NAMED("response.completed",
                       RESPONSE("completed", MESSAGE("completed", PART),
                                "{\"input_tokens\":9,\"output_tokens\":3,\"total_tokens\":12}"))},
    {"stream-messages",
     NAMED("message_start",
           ",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":"
           "\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{"
           "\"input_tokens\":9,\"output_tokens\":1}}")
         NAMED("content_block_start",
               ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}"),
     NAMED("content_block_delta",
           ",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"@" TIME "@ word\"}"),
     NAMED("content_block_stop", ",\"index\":0")
         NAMED("message_delta", ",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},"
                                "\"usage\":{\"output_tokens\":3}") NAMED("message_stop", "")},
};

#endif
