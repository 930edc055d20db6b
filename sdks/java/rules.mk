# What the Java SDK adds to the words of the Makefile.

SETUP += setup-java
TEST += test-java
CHECK += check-java
GENERATED += sdks/java/src/main/generated

MAVEN := cd sdks/java && mvn -B -ntp
JAVA_SOURCES := $(shell find sdks/java/src -name '*.java')

# The newest plugin that exists for this platform; the runtime is newer, see pom.xml.
GRPC_JAVA_PLUGIN := io.grpc:protoc-gen-grpc-java:1.83.0:exe:linux-$(if $(filter aarch64,$(shell uname -m)),aarch_64,x86_64)

.PHONY: setup-java build-java test-java check-java

gen gen-check check-python: $(BIN)/protoc-gen-grpc-java

setup-java: $(BIN)/protoc-gen-grpc-java build-java ## Install what the Java SDK takes

build-java: sdks/java/target/driver.classpath ## Build the Java SDK and its conformance driver

test-java: build ## Build, then run the Java SDK's tests, with a broker where they take one
	$(MAVEN) test -Dfila.server=$(CURDIR)/$(BIN)/fila-server

check-java: ## Format, compiler's warnings and javadoc of the Java SDK
	$(MAVEN) -q spotless:check
	$(MAVEN) -q compile javadoc:javadoc

sdks/java/target/driver.classpath: sdks/java/pom.xml $(JAVA_SOURCES) $(VENV)/.system-dev
	$(MAVEN) -q test-compile dependency:build-classpath -Dmdep.outputFile=target/driver.classpath
	@touch $@

$(BIN)/protoc-gen-grpc-java: sdks/java/rules.mk $(VENV)/.system-dev
	mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy \
		-Dartifact=$(GRPC_JAVA_PLUGIN) -DoutputDirectory=$(CURDIR)/build/grpc-java -Dmdep.stripVersion
	install -m 755 build/grpc-java/protoc-gen-grpc-java-linux-*.exe $@
	@touch $@
