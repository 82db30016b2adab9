-- Whether messages of the queue can have a batch. The key decides, not the setting `batched`, which another program can
-- remove: messages would then end without being counted, and their batches would never finish.
-- A queue with the setting fails, before any change, while the key is of another type; no other queue needs the key. A poll removes
-- the setting where the key is gone, so that a later key of another program does not stop a queue that had batches once.
local function hasBatches(settings, batches)
  if settings.batched then return redis.call('HLEN', batches) > 0 end
  return redis.call('EXISTS', batches) == 1
end
