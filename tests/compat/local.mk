# SPDX-License-Identifier: Apache-2.0
# Other people's clients. kafkajs is fetched into the build directory, outside the tests (they have no network).
COMPAT_TESTS += %D%/kcat.t %D%/kafka-python.t %D%/confluent.t %D%/kafkajs.t %D%/groups.t %D%/burrow.t %D%/kafka-group-tools.t
EXTRA_DIST += %D%/kafka-pom.xml %D%/group_scenarios.py %D%/group_scenarios.expected
EXTRA_DIST += %D%/lib.sh %D%/records.py %D%/kafka_python_client.py %D%/confluent_client.py %D%/kafkajs_client.cjs

include tests/compat/librdkafka/local.mk

NPM_PACKAGES = kafkajs@2.2.4 kafkajs-snappy@1.1.0 lz4js@0.2.0 zstd-codec@0.1.5
tests/npm/stamp:
	@mkdir -p tests/npm
	@if command -v npm >/dev/null && cd tests/npm && npm install --ignore-scripts --no-audit --no-fund --silent \
	    --prefix . $(NPM_PACKAGES) </dev/null >npm.log 2>&1; then touch stamp; else echo 'npm: kafkajs was not installed'; fi
tests/maven/stamp: %D%/kafka-pom.xml
	@mkdir -p tests/maven
	@if command -v mvn >/dev/null && mvn -q -B -f $(srcdir)/%D%/kafka-pom.xml dependency:copy-dependencies \
	    -DoutputDirectory=$(abs_builddir)/tests/maven/jars -DincludeScope=runtime </dev/null >tests/maven/mvn.log 2>&1; then \
	    touch $@; else echo "Maven: Apache Kafka's tools were not fetched"; fi
check-compat check-all: tests/npm/stamp tests/maven/stamp
check-long: tests/npm/stamp
clean-local: clean-npm
clean-npm:
	rm -rf tests/npm tests/maven
.PHONY: clean-npm
