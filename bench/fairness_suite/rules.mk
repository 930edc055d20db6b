# How fairly a broker shares itself out: nine questions, for any broker.

.PHONY: fairness-suite

fairness-suite: build $(VENV)/.dev ## Ask brokers how fairly they share themselves out (BROKERS=fila,redis-streams)
	python bench/fairness_suite/ask.py $(if $(BROKERS),--brokers $(BROKERS)) $(if $(QUICK),--quick)
