-- Drops dead letters: the oldest if there are more than the queue keeps, or those that died too long ago. Dead letters that a consumer has or
-- that have another priority count, but stay. At most `came` and 100 more are dropped. A key of another type prevents no other step.
-- Returns the ids if these can have batches.
local MOST_DROPPED = 100
local function dropDead(config, dead, came, now)
  local bounds = dead and stored(config, 'keepDeadLetters', 'keepDeadLettersFor') or {}
  local most, age = setting(bounds.keepDeadLetters, 1, 1000000), setting(bounds.keepDeadLettersFor, 1)
  local size = most and redis.pcall('HLEN', dead.messages)
  local surplus, limit, gone = type(size) == 'number' and size - most or 0, came + MOST_DROPPED, {}
  if surplus > 0 then
    gone = namesOf(math.min(surplus, limit), function(many) return redis.pcall('ZRANGE', dead.due, 0, many - 1) end)
  elseif age then
    local before = '(' .. string.format('%.0f', now - age)
    gone = namesOf(limit, function(many) return redis.pcall('ZRANGEBYSCORE', dead.due, '-inf', before, 'LIMIT', 0, many) end)
  end
  if #gone == 0 then return end
  redis.pcall('HDEL', dead.messages, unpack(gone))
  redis.pcall('HDEL', dead.deliveries, unpack(gone))
  redis.pcall('HDEL', dead.failures, unpack(gone))
  redis.call('ZREM', dead.due, unpack(gone)) -- last: after an error the next script finds the rest in the schedule
  if dead.log == nil then dead.log = logOf(dead.config) or false end
  for n = 1, dead.log and #gone or 0 do noteChange(dead.log, 'x,,,', gone[n]) end
  return stored(dead.config, 'batched').batched and gone or nil
end
