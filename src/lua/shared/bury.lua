-- Takes a message that stands in no schedule any more out of the queue: to the dead letters if `dead` is given, which do not
-- expire and keep what is known of the failures. A dead letter of the same id stays what it is; the new one gets a suffix.
local function bury(queue, dead, id, now)
  if dead then
    local record = redis.call('HGET', queue.messages, id)
    if record then
      local name, again = id, 0
      while redis.call('HEXISTS', dead.messages, name) == 1 do
        again = again + 1
        name = id .. '~' .. string.format('%.0f', now) .. '.' .. again
      end
      local expires, limit, headers, rest = readMeta(record)
      if expires then record = writeMeta(nil, limit, headers) .. string.sub(record, rest) end
      -- the record last: after an error the name is still free, so that another attempt does not leave a second one
      local failures = redis.call('HGET', queue.failures, id)
      if failures then redis.call('HSET', dead.failures, name, failures) end
      redis.call('ZADD', dead.due, string.format('%.0f', now), name)
      redis.call('HSET', dead.messages, name, record)
    end
  end
  redis.call('HDEL', queue.messages, id)
  redis.call('HDEL', queue.deliveries, id)
  redis.call('HDEL', queue.failures, id)
end
