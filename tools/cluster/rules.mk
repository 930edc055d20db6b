# A group on this machine, to look at and to break: tools/cluster/group.py.

.PHONY: cluster

cluster: build $(VENV)/.dev build/kafka/.jars ## Three Kafka brokers and three nodes of a group on loopback (data/cluster)
	@exec $(BIN)/python -m tools.cluster.group build/kafka data/cluster

build/kafka/.jars: tools/cluster/pom.xml
	@rm -rf build/kafka
	mvn --quiet --batch-mode --strict-checksums -f tools/cluster/pom.xml \
		dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/build/kafka
	@touch $@
