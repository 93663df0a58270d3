{
  "id": "resp_6929a1c0000000000000000000000000000000000000a001",
  "object": "response",
  "created_at": 1764400000,
  "status": "incomplete",
  "background": false,
  "completed_at": null,
  "error": null,
  "incomplete_details": {
    "reason": "max_output_tokens"
  },
  "instructions": null,
  "max_output_tokens": 16,
  "max_tool_calls": null,
  "model": "example-model",
  "output": [
    {
      "id": "msg_6929a1c0000000000000000000000000000000000000e001",
      "type": "message",
      "status": "incomplete",
      "content": [
        {
          "type": "output_text",
          "annotations": [],
          "logprobs": [],
          "text": "The squares of 1 to"
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
  "tool_choice": "auto",
  "tools": [],
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
