{
  "id": "resp_6929a1c0000000000000000000000000000000000000a001",
  "object": "response",
  "created_at": 1764400000,
  "status": "completed",
  "background": false,
  "completed_at": 1764400006,
  "error": null,
  "incomplete_details": null,
  "instructions": "Use Python for arithmetic.",
  "max_output_tokens": null,
  "max_tool_calls": 4,
  "model": "example-model",
  "output": [
    {
      "id": "ci_6929a1c0000000000000000000000000000000000000b001",
      "type": "code_interpreter_call",
      "status": "completed",
      "code": "import csv\nrows = [(n, n * n) for n in range(1, 13)]\nwith open(\"/mnt/data/squares.csv\", \"w\", newline=\"\") as f:\n    csv.writer(f).writerows(rows)\nprint(sum(r[1] for r in rows))\n",
      "container_id": "cntr_6929a1c00000000000000000000000000000000000c001",
      "outputs": [
        {
          "type": "logs",
          "logs": "650\n"
        }
      ]
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
              "type": "container_file_citation",
              "container_id": "cntr_6929a1c00000000000000000000000000000000000c001",
              "file_id": "cfile_6929a1c0000000000000000000000d01",
              "filename": "squares.csv",
              "start_index": 68,
              "end_index": 97
            }
          ],
          "logprobs": [],
          "text": "The squares of 1 to 12 add up to 650. The table is in [squares.csv](sandbox:/mnt/data/squares.csv)."
        }
      ],
      "role": "assistant"
    }
  ],
  "parallel_tool_calls": false,
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
        "type": "auto",
        "file_ids": [
          "file-example0001"
        ],
        "memory_limit": "4g"
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
  "metadata": {
    "job": "demo-17"
  }
}
