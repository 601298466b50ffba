#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What librdkafka's tests call as $KAFKA_PATH/bin/kafka-topics.sh, over klog.
set -u
verb='' topic='' partitions='' configs=()
while [ $# -gt 0 ]; do
    case $1 in
    --bootstrap-server | --replication-factor) shift ;;
    --create | --alter | --delete) verb=${1#--} ;;
    --topic) topic=$2 && shift ;;
    --partitions) partitions=$2 && shift ;;
    --config)
        # klog has no such delay
        [[ $2 == file.delete.delay.ms=* ]] || configs+=(-c "$2")
        shift
        ;;
    *) echo "kafka-topics.sh: $1 is not known here" >&2 && exit 2 ;;
    esac
    shift
done
exec klog topic "$verb" "$topic" ${partitions:+-p "$partitions"} "${configs[@]}"
