{
  "id": "resp_6929a1c0000000000000000000000000000000000000a001",
  "object": "response",
  "created_at": 1764400000,
  "status": "completed",
  "background": false,
  "completed_at": 1764400006,
  "error": null,
  "incomplete_details": null,
  "instructions": null,
  "max_output_tokens": null,
  "max_tool_calls": null,
  "model": "example-model",
  "output": [
    {
      "id": "ws_6929a1c0000000000000000000000000000000000000f001",
      "type": "web_search_call",
      "status": "completed",
      "action": {
        "type": "search",
        "query": "example.org latest release changes",
        "queries": [
          "example.org latest release changes"
        ],
        "sources": [
          {
            "type": "url",
            "url": "https://example.org/news/release-9"
          },
          {
            "type": "url",
            "url": "https://example.org/changelog"
          }
        ]
      }
    },
    {
      "id": "ws_6929a1c0000000000000000000000000000000000000f002",
      "type": "web_search_call",
      "status": "completed",
      "action": {
        "type": "open_page",
        "url": "https://example.org/news/release-9"
      }
    },
    {
      "id": "msg_6929a1c0000000000000000000000000000000000000e001",
      "type": "message",
      "status": "completed",
      "content": [
        {
          "type": "output_text",
          "annotations": [
            {
              "type": "url_citation",
              "start_index": 38,
              "end_index": 89,
              "title": "Release 9 notes",
              "url": "https://example.org/news/release-9"
            }
          ],
          "logprobs": [],
          "text": "Release 9 drops the old config format ([example.org](https://example.org/news/release-9))."
        }
      ],
      "role": "assistant"
    }
  ],
  "parallel_tool_calls": true,
  "previous_response_id": null,
  "prompt_cache_key": null,
  "reasoning": {
    "effort": null,
    "summary": null
  },
  "safety_identifier": null,
  "service_tier": "default",
  "store": true,
  "temperature": 1,
  "text": {
    "format": {
      "type": "text"
    },
    "verbosity": "medium"
  },
  "tool_choice": "required",
  "tools": [
    {
      "type": "web_search",
      "search_context_size": "medium",
      "user_location": {
        "type": "approximate",
        "country": "NL",
        "city": "Utrecht",
        "region": null,
        "timezone": "Europe/Amsterdam"
      },
      "filters": {
        "allowed_domains": [
          "example.org"
        ]
      }
    }
  ],
  "top_logprobs": 0,
  "top_p": 1,
  "truncation": "disabled",
  "usage": {
    "input_tokens": 412,
    "input_tokens_details": {
      "cached_tokens": 0
    },
    "output_tokens": 96,
    "output_tokens_details": {
      "reasoning_tokens": 0
    },
    "total_tokens": 508
  },
  "user": null,
  "metadata": {}
}
