"""The unmodified official clients from npm (`openai`, `@anthropic-ai/sdk`): files and vector stores of an account of their own, by
`relay_paths`."""
import email
import json

from harness import main
from official import Official
from upstream import Status


class Shelf:
    """What keeps files as the vendors' services do, a little."""

    def __init__(self):
        self.files = {}

    def __call__(self, connection):
        request = connection.request
        path, _, _ = request.target.partition("?")
        parts = path.removeprefix("/v1/").split("/")
        if parts[0] == "vector_stores":
            return self.store(request, parts)
        if request.method == "POST":
            return Status(200, self.put(request))
        if len(parts) == 1:
            return Status(200, {"object": "list", "data": [self.told(i) for i in self.files], "has_more": False})
        if parts[1] not in self.files:
            return Status(404, {"error": {"message": f"No such File object: {parts[1]}", "type": "invalid_request_error", "param": "id",
                                          "code": None}})
        if parts[2:] == ["content"]:
            return Status(200, self.files[parts[1]]["data"])
        if request.method == "DELETE":
            del self.files[parts[1]]
            return Status(200, {"id": parts[1], "object": "file", "deleted": True, "type": "file_deleted"})
        return Status(200, self.told(parts[1]))

    def told(self, file_id):
        return {"id": file_id, "object": "file", **{k: v for k, v in self.files[file_id].items() if k != "data"}}

    def put(self, request):
        form = email.message_from_bytes(b"Content-Type: " + request.get("content-type").encode() + b"\r\n\r\n" + request.body)
        fields = {part.get_param("name", header="content-disposition"): part for part in form.get_payload()}
        data = fields["file"].get_payload(decode=True)
        purpose = fields["purpose"].get_payload() if "purpose" in fields else "none"
        self.files["file-1"] = {"bytes": len(data), "filename": fields["file"].get_filename(), "purpose": purpose, "data": data}
        return self.told("file-1")

    @staticmethod
    def store(request, parts):
        body = json.loads(request.body)
        if len(parts) == 1:
            return Status(200, {"id": "vs-1", "object": "vector_store", "name": body["name"]})
        return Status(200, {"id": body["file_id"], "object": "vector_store.file", "vector_store_id": parts[1]})


class OfficialFiles(Official):
    program = "files.mjs"

    def test_files_and_vector_stores(self):
        for part in ("openai_files", "openai_vector_stores", "anthropic_files"):
            up = self.upstream(forever=Shelf())
            gateway = self.gateway({"auth": {"mode": "passthrough"}, "upstreams": [
                {"name": "up", "base_url": up.url + "/v1", "models": ["m"], "passthrough": True,
                 "relay_paths": ["/v1/files", "/v1/files/*", "/v1/vector_stores", "/v1/vector_stores/*/files"]}]},
                                   upstream_ports=[up.port])
            self.node(gateway, part)
            self.assertTrue(up.requests, part)


if __name__ == "__main__":
    main()
