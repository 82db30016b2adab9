-- Drops dead letters: the oldest if more wait than the queue keeps, or those that died too long ago. Dead letters that a consumer has, that
-- have another priority, or whose place another program has deleted, neither count nor are dropped: the others, such as the one that came
-- now, would go in their stead. At most `came` and 100 more are dropped, and none while the settings or the batches of the dead letters are
-- of another type. Such a key prevents no other step. Returns the ids if these can have batches. Needs shared/surplus.lua.
local function dropDead(config, dead, came, now)
  local bounds = dead and stored(config, 'keepDeadLetters', 'keepDeadLettersFor') or {}
  local most, age = setting(bounds.keepDeadLetters, 1, 1000000), setting(bounds.keepDeadLettersFor, 1)
  local limit = came + 100 -- not a constant of the chunk: the longest script has no room for more names
  local gone = most and surplusOf(dead.due, most, came, limit, now, '18014398509481984') or {} -- see shared/aside.lua
  if #gone == 0 and age then
    local before = '(' .. string.format('%.0f', now - age)
    gone = namesOf(limit, function(many, from) return redis.pcall('ZRANGEBYSCORE', dead.due, '-inf', before, 'LIMIT', from, many) end)
  end
  if #gone == 0 or type(redis.pcall('HLEN', dead.config)) == 'table' then return end
  local size = redis.pcall('HLEN', dead.batches)
  if type(size) == 'table' and stored(dead.config, 'batched').batched then return end
  if dead.log == nil then dead.log = logOf(dead.config) or false end
  redis.pcall('HDEL', dead.messages, unpack(gone))
  redis.pcall('HDEL', dead.deliveries, unpack(gone))
  redis.pcall('HDEL', dead.failures, unpack(gone))
  redis.call('ZREM', dead.due, unpack(gone)) -- last: after an error the next script finds the rest in the schedule
  for n = 1, dead.log and #gone or 0 do noteChange(dead.log, 'x,,,', gone[n]) end
  return type(size) == 'number' and size > 0 and gone or nil
end
