{
  "error": {
    "message": "Response with id 'resp_6929a1c0000000000000000000000000000000000000a001' not found.",
    "type": "invalid_request_error",
    "param": null,
    "code": null
  }
}
