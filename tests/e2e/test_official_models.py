"""The unmodified official clients from npm (`openai`, `@anthropic-ai/sdk`): their lists of models, and a name of the operator's own
in all three APIs."""
from harness import main
from official import Official
from upstream import Status, answer, streamed

CLAUDE = {"data": [{"type": "model", "id": "claude-x", "display_name": "Claude X", "created_at": "2025-02-19T00:00:00Z"}],
          "has_more": False, "first_id": "claude-x", "last_id": "claude-x"}


class OfficialModels(Official):
    program = "models.mjs"

    def begin(self, *turns, forever=None):
        self.up = self.upstream(*turns, forever=forever)
        return self.serve(self.up, upstreams=[
            {"name": "a", "base_url": self.up.url, "models": ["claude-*", "m1", "m2", "m3"], "surfaces": ["messages"],
             "api_key": "sk-a"},
            {"name": "b", "base_url": self.up.url, "surfaces": ["chat"]}],
            models=[{"name": "fast", "to": [{"upstream": "b", "model": "model-b"}]}])

    def test_the_lists_and_single_models(self):
        gateway = self.begin(forever=Status(200, CLAUDE))
        for part in ("openai_list", "openai_one", "anthropic_list", "anthropic_one"):
            self.node(gateway, part)
        self.assertEqual([(r.target, r.get("x-api-key"), r.get("anthropic-version"), r.get("authorization"))
                          for r in self.up.requests], [("/v1/models?limit=1000", "sk-a", "2023-06-01", None)],
                         "it was asked once, in its own way")

    def test_a_name_of_ones_own_in_all_three_apis(self):
        whole = {**answer("hello"), "model": "model-b"}
        gateway = self.begin(whole, streamed("hello"), whole, whole)
        self.node(gateway, "names")
        self.assertEqual({r.json["model"] for r in self.up.requests}, {"model-b"})


if __name__ == "__main__":
    main()
