{
  "id": "resp_6929a1c0000000000000000000000000000000000000a001",
  "object": "response",
  "created_at": 1764400000,
  "status": "failed",
  "background": false,
  "completed_at": null,
  "error": {
    "code": "server_error",
    "message": "The upstream model returned an error."
  },
  "incomplete_details": null,
  "instructions": null,
  "max_output_tokens": null,
  "max_tool_calls": null,
  "model": "example-model",
  "output": [],
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
  "usage": null,
  "user": null,
  "metadata": {}
}
