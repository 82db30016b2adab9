-- Whether messages of the queue can have a batch. The key decides, not the setting `batched`, which another program can
-- remove: messages would then end without being counted, and their batches would never finish.
local function hasBatches(batches)
  return redis.call('EXISTS', batches) == 1
end
