{
  "object": "list",
  "data": [
    {
      "id": "msg_6929a1c0in01",
      "type": "message",
      "role": "user",
      "status": "completed",
      "content": [
        {
          "type": "input_text",
          "text": "Sum the squares of 1 to 12."
        }
      ]
    }
  ],
  "first_id": "msg_6929a1c0in01",
  "last_id": "msg_6929a1c0in01",
  "has_more": false
}
