# Claude Code's environment for a gateway as in ../team.yaml, to be read by a shell: . claude-code.sh
export ANTHROPIC_BASE_URL=http://127.0.0.1:4000
export ANTHROPIC_AUTH_TOKEN=key-of-alice
export ANTHROPIC_MODEL=mock
export ANTHROPIC_DEFAULT_HAIKU_MODEL=mock
