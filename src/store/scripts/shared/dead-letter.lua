-- Adds a message to the dead letters, which do not expire and keep the history of failures. An existing dead letter of the same id
-- stays; the new one gets a suffix. Returns the server's error if a key of the dead letters is of another type.
local function putAway(queue, dead, id, now)
  local record = redis.call('HGET', queue.messages, id)
  if not record then return nil end
  if dead.log == nil then
    local fields = redis.pcall('HLEN', dead.config)
    if type(fields) == 'table' then return fields.err end
    dead.log = logOf(dead.config) or false
  end
  local name, again = id, 0
  local taken = redis.pcall('HEXISTS', dead.messages, name)
  while taken == 1 do
    again = again + 1
    name = id .. '~' .. string.format('%.0f', now) .. '.' .. again
    taken = redis.pcall('HEXISTS', dead.messages, name)
  end
  if taken ~= 0 then return taken.err end
  local expires, limit, headers, rest, group = readMeta(record)
  if expires then record = writeMeta(nil, limit, headers, group) .. string.sub(record, rest) end
  -- the record last: after an error the name is still free, so that another attempt does not leave a second one
  local failures = historyOf(queue.failures, id) or ''
  if failures ~= '' then redis.pcall('HSET', dead.failures, name, failures) end
  local added = redis.pcall('ZADD', dead.due, string.format('%.0f', now), name)
  if type(added) == 'table' then return added.err end
  redis.call('HSET', dead.messages, name, record)
  redis.pcall('HDEL', dead.deliveries, name) -- see shared/left-behind.lua
  if dead.log then noteChange(dead.log, changeHead('a', nil, string.format('%.0f', now), 0), name, dead.log.records and record) end
end

-- Removes a message that is no longer in a schedule from the queue, with `dead` to the dead letters. If these cannot
-- take it, nothing changes, and the server's error is returned.
local function deadLetter(queue, dead, id, now)
  local problem = dead and putAway(queue, dead, id, now)
  if problem then return problem end
  redis.call('HDEL', queue.messages, id)
  redis.call('HDEL', queue.deliveries, id)
  redis.pcall('HDEL', queue.failures, id)
end
