{
  "error": {
    "message": "Invalid value: 'code_interpeter'. Supported values are: 'code_interpreter', 'function' and 'web_search'.",
    "type": "invalid_request_error",
    "param": "tools[0].type",
    "code": "invalid_value"
  }
}
