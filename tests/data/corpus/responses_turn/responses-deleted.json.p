{
  "id": "resp_6929a1c0000000000000000000000000000000000000a001",
  "object": "response",
  "deleted": true
}
