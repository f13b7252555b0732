           -- The sums of every state of gpu_bucket; null while no bucket knows them.
           sum(installed_gpu_ms)::bigint AS installed, sum(unhealthy_gpu_ms)::bigint AS unhealthy,
           sum(unhealthy_occupied_gpu_ms)::bigint AS unhealthy_occupied, sum(maintenance_gpu_ms)::bigint AS maintenance,
           sum(allocated_gpu_ms)::bigint AS allocated, sum(unallocated_gpu_ms)::bigint AS unallocated,
           sum(overhead_gpu_ms)::bigint AS overhead, sum(reserved_gpu_ms)::bigint AS reserved,
           sum(free_gpu_ms)::bigint AS free, sum(lost_gpu_ms)::bigint AS lost, sum(unknown_gpu_ms)::bigint AS unknown,
           sum(residual_gpu_ms)::bigint AS residual
