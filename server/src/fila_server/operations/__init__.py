"""What an operator may ask, whatever the protocol: protobuf in, protobuf out.

what a request may hold    requests; rules for a queue's settings
queues                     queues, versions, dry_run, seeking, scripts
fairness keys              keys, preview, explain, forecast, waiting_longest; key_walk and walks, how all are looked at
dead letters               redrive, dead_letter_operations, dead_letter_calls
numbers                    statistics, watch_stats, series, series_calls, status, machine
who may, and who did       keyring, links, start_access; audit, changes, denials, observing
"""
