"""The unmodified official clients over a model server that speaks only another API: the same parts as in test_official_*.py, of
which the client must see the same. Left out is what no server sees (unknown models, kept answers that are looked up, clients
that leave) and, over the second server, what the first has shown of the client's side; test_translated.py has all pairs."""
import messages_upstream
import test_official_ai
import test_official_chat
import test_official_messages
import test_official_responses
import upstream as chat_upstream
from harness import main
from official import Official

SERVERS = {"chat": chat_upstream, "messages": messages_upstream}


class Over:
    """Stands before a class of parts: its gateways have a server that speaks this API alone."""
    server = "chat"

    @property
    def form(self):
        return SERVERS[self.server]

    def serve(self, *arguments, **sections):
        return super().serve(*arguments, upstream_options={"surfaces": [self.server]}, **sections)

    def check_whole(self, body, stock):
        Official.check_whole(self, body, stock)

    def test_the_code_is_not_run_twice_whatever_fails_behind_it(self):
        self.check_one_run(503)


class ChatOverMessages(Over, test_official_chat.OfficialChat):
    server = "messages"
    test_errors_are_raised_as_the_client_knows_them = None


class ResponsesOverChat(Over, test_official_responses.OfficialResponses):
    test_c088_outputs_are_null_unless_they_are_asked_for = None
    test_errors_are_raised_as_the_client_knows_them = None
    test_nothing_is_kept_where_the_client_says_so = None
    test_the_code_is_not_run_twice_whatever_fails_behind_it = None  # as on chat: it is one client
    test_c075_a_client_that_leaves_ends_the_run = None


class ResponsesOverMessages(ResponsesOverChat):
    server = "messages"
    test_a_stream = None
    test_an_answer_is_kept_and_told_again = None
    test_c053_a_container_is_named_in_the_next_request = None


class MessagesOverChat(Over, test_official_messages.OfficialMessages):
    test_a_whole_answer_on_the_beta_path = None
    test_errors_are_raised_as_the_client_knows_them = None
    test_fetching_is_an_error_of_its_block = None
    test_a_client_that_leaves_ends_the_run = None

    def check_said(self, body):
        said = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
        self.assertEqual(said, [None, None, "A database: https://sqlite.org/."])


class MessagesBeforeOverChat(Over, test_official_messages.OfficialMessagesBefore):
    test_a_whole_answer_and_streams = None
    test_the_code_is_not_run_twice_whatever_fails_behind_it = None  # as by the newer one
    check_said = MessagesOverChat.check_said


class AiOverChat(Over, test_official_ai.OfficialAi):
    test_a_stream = None  # as in a conversation
    test_the_code_is_not_run_twice_whatever_fails_behind_it = None

    def form_of(self, api):
        return self.form


class AiOverMessages(AiOverChat):
    server, apis = "messages", ["responses"]
    test_a_stream_with_a_shell_command = None  # of Messages itself
    test_c032_a_search_its_sources_and_what_is_sent_back = None


if __name__ == "__main__":
    main()
