-- Whether no batch has a message any more: the queue has no message, or no field of the batches names one. Another program can have
-- removed such fields, or raised a count: then a closed batch has pending messages that never end, and it would not finish. With more
-- fields than one page it answers for an empty queue only. Needs shared/names.lua.
local function areBatchesEmpty(batches)
  if redis.pcall('HLEN', batches.messages) == 0 and redis.pcall('ZCARD', batches.inFlight) == 0 then return true end
  if redis.call('HLEN', batches.key) > largeNames.page or largeNames.bytes > largeNames.most then return false end
  for _, field in ipairs(redis.call('HKEYS', batches.key)) do
    if string.sub(field, 1, 1) == 'm' then return false end
  end
  return true
end

-- Counts the pending messages of such a batch as removed.
local function removePending(batch)
  batch.pending, batch.removed = 0, batch.removed + batch.pending
end
