# What a message costs against eight sizes: keys, buckets, channels, queues, consumers, connections, backlog, payload.

.PHONY: bench-scaling

bench-scaling: build $(VENV)/.dev ## Chart what a message costs against keys, queues, backlog, ... (QUICK=1 ONLY=keys,queues)
	python bench/scaling/scaling.py
