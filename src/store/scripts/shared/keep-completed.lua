-- Keeps records of completed messages: at most `most`, and none that was completed before `oldest`. A key of another type
-- prevents no acknowledgement; the records of earlier messages of the ids are then removed. Needs shared/surplus.lua.
local SURPLUS = 100 -- how many more than it adds one script removes
local DAY_MS = 86400000 -- no clock is further ahead
local function keepCompleted(completed, completedAt, ids, records, now, most, oldest)
  local at, times, fields = string.format('%.0f', now), {}, {}
  for n, id in ipairs(ids) do
    times[2 * n - 1], times[2 * n], fields[2 * n - 1], fields[2 * n] = at, id, id, records[n]
  end
  local scheduled = redis.pcall('ZADD', completedAt, unpack(times))
  local written = type(scheduled) == 'number' and redis.pcall('HSET', completed, unpack(fields))
  if type(written) ~= 'number' then
    forgetCompleted(completed, completedAt, ids)
    return
  end
  local limit = #ids + SURPLUS
  local gone = surplusOf(completedAt, most, #ids, limit, now, string.format('%.0f', now + DAY_MS))
  if #gone == 0 and oldest then
    local before = '(' .. string.format('%.0f', oldest)
    gone = namesOf(limit, function(many, from) return redis.call('ZRANGEBYSCORE', completedAt, '-inf', before, 'LIMIT', from, many) end)
  end
  if #gone > 0 then
    redis.call('HDEL', completed, unpack(gone))
    redis.call('ZREM', completedAt, unpack(gone))
  end
end
