/* Does an upstream's error say that the request is longer than the model's context? Servers agree on no code. */
#include "gateway/upstream.h"

#include <strings.h>

static bool says(const char *message, const char *words)
{
    return strcasestr(message, words) != NULL;
}

bool error_says_context_full(const struct sg_error *err)
{
    static const char *const words[] = {
        "context length",             /* OpenAI, vLLM, Mistral, DeepSeek, OpenRouter */
        "context_length",             /* the code, where it stands in the message */
        "context size",               /* llama.cpp */
        "context window",             /* many */
        "prompt is too long",         /* Anthropic */
        "input is too long",          /* Bedrock */
        "input token count",          /* Gemini */
        "reduce the length of the",   /* Groq, OpenAI */
        "maximum number of tokens",   /* Gemini, Vertex */
        "too many tokens",            /* Cohere */
        "must have less than",        /* TGI: `inputs` must have less than N tokens */
        "exceeds the maximum length", /* several */
    };
    if (strcmp(err->reason, "context_length_exceeded") == 0) {
        return true;
    }
    int status = error_status(err);
    if (status != 400 && status != 413) {
        return false;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (says(err->message, words[i])) {
            return true;
        }
    }
    return false;
}
