# What the Java SDK adds to the words of the Makefile.

SETUP += build-java
TEST += test-java
CHECK += check-java

MAVEN := cd sdks/java && mvn -B -ntp
JAVA_SOURCES := $(shell find sdks/java/src -name '*.java') $(wildcard proto/fila/v1/*.proto)

.PHONY: build-java test-java check-java

build-java: sdks/java/target/driver.classpath ## Build the Java SDK and its conformance driver

test-java: build sdks/java/target/driver.classpath ## Build, then run the Java SDK's tests, with a broker where they take one
	$(MAVEN) test -Dfila.server=$(CURDIR)/$(BIN)/fila-server

check-java: ## Format, compiler's warnings and javadoc of the Java SDK
	$(MAVEN) -q spotless:check
	$(MAVEN) -q compile javadoc:javadoc

sdks/java/target/driver.classpath: sdks/java/pom.xml $(JAVA_SOURCES) $(VENV)/.system-dev
	$(MAVEN) -q test-compile dependency:build-classpath -Dmdep.outputFile=target/driver.classpath
	@touch $@
