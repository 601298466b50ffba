# SPDX-License-Identifier: Apache-2.0
# Other people's clients. COMPAT_TESTS take seconds and are in ./check too; MATRIX_TESTS and librdkafka's own tests only in `make check-compat`, which
# writes the table of clients into docs/COMPATIBILITY.md. What they need is fetched into the build directory, outside the tests (they have
# no network); where it cannot be had the test is skipped.
COMPAT_TESTS += %D%/kcat.t %D%/kafka-python.t %D%/confluent.t %D%/kafkajs.t %D%/groups.t %D%/burrow.t
MATRIX_TESTS += %D%/kafka-python-newest.t %D%/confluent-newest.t %D%/confluent-js.t %D%/platformatic.t %D%/franz-go.t %D%/sarama.t \
    %D%/kafka-tools.t %D%/kafka-cluster.t %D%/apache-kafka.t
EXTRA_DIST += %D%/lib.sh %D%/records.py %D%/kafka_python_client.py %D%/confluent_client.py %D%/kafkajs_client.cjs \
    %D%/confluent_client.cjs %D%/platformatic_client.cjs %D%/kcat_client.sh %D%/fetch.sh \
    %D%/go/main.go %D%/go/franz.go %D%/go/sarama.go
EXTRA_DIST += %D%/compare.py %D%/table.py %D%/group_scenarios.py %D%/group_versions.py %D%/tool_scenarios.sh
EXTRA_DIST += %D%/group_scenarios.expected %D%/group_versions.expected %D%/tool_scenarios.expected
EXTRA_DIST += %D%/group_scenarios.differences %D%/group_versions.differences %D%/tool_scenarios.differences
EXTRA_DIST += %D%/apache_kafka.sh %D%/kafka-pom.xml

include tests/compat/librdkafka/local.mk

NPM_PACKAGES = kafkajs@2.2.4 kafkajs-snappy@1.1.0 lz4js@0.2.0 zstd-codec@0.1.5
tests/npm/stamp:
	@mkdir -p tests/npm
	@if command -v npm >/dev/null && cd tests/npm && npm install --ignore-scripts --no-audit --no-fund --silent \
	    --prefix . $(NPM_PACKAGES) </dev/null >npm.log 2>&1; then touch stamp; else echo 'npm: kafkajs was not installed'; fi
fetch-clients:
	@PYTHON='$(PYTHON)' bash $(srcdir)/%D%/fetch.sh tests/clients
check-compat: tests/npm/stamp fetch-clients
check-all check-long: tests/npm/stamp
client-table:
	$(PYTHON) $(srcdir)/%D%/table.py tests/compat/results $(srcdir)/docs/COMPATIBILITY.md
clean-local: clean-clients
clean-clients:
	rm -rf tests/npm tests/clients tests/compat/results
.PHONY: fetch-clients client-table clean-clients
