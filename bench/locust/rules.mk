# Load tests with locust: `make locust` lists them, each is a word of its own, LOCUST_ARGS go to locust.

LOCUST_TESTS := produce consume mixed noisy-neighbour throttled-provider redis-clients batches \
	ramp spike soak flood churn blackout

.PHONY: locust $(LOCUST_TESTS:%=locust-%)

locust: build $(VENV)/.dev ## List the load tests; `make locust-flood LOCUST_ARGS="-t 5m --fail-p99-ms 100"` runs one
	@python bench/locust/load_test.py

$(LOCUST_TESTS:%=locust-%): locust-%: build $(VENV)/.dev
	python bench/locust/load_test.py $* $(LOCUST_ARGS)
