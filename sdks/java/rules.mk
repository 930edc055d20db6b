# What the Java SDK adds to the words of the Makefile.

GENERATED += sdks/java/src/main/generated

# The newest plugin that exists for this platform; the runtime is newer, see pom.xml.
GRPC_JAVA_PLUGIN := io.grpc:protoc-gen-grpc-java:1.83.0:exe:linux-$(if $(filter aarch64,$(shell uname -m)),aarch_64,x86_64)

gen gen-check check-python: $(BIN)/protoc-gen-grpc-java

$(BIN)/protoc-gen-grpc-java: sdks/java/rules.mk $(VENV)/.system-dev
	mvn -q -B dependency:copy -Dartifact=$(GRPC_JAVA_PLUGIN) -DoutputDirectory=$(CURDIR)/build/grpc-java -Dmdep.stripVersion
	install -m 755 build/grpc-java/protoc-gen-grpc-java-linux-*.exe $@
	@touch $@
