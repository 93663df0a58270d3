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
      "id": "ci_6929a1c0000000000000000000000000000000000000b001",
      "type": "code_interpreter_call",
      "status": "completed",
      "code": "print(9*9)\n",
      "container_id": "cntr_6929a1c00000000000000000000000000000000000c001",
      "outputs": null
    },
    {
      "id": "fc_6929a1c0000000000000000000000000000000000000f201",
      "type": "function_call",
      "status": "completed",
      "arguments": "{\"part\":\"A-7\"}",
      "call_id": "call_partA7",
      "name": "get_stock"
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
  "tools": [
    {
      "type": "code_interpreter",
      "container": {
        "type": "auto"
      }
    },
    {
      "type": "function",
      "name": "get_stock",
      "description": "Look up stock on hand for a part number.",
      "strict": true,
      "parameters": {
        "type": "object",
        "properties": {
          "part": {
            "type": "string"
          }
        },
        "required": [
          "part"
        ],
        "additionalProperties": false
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
