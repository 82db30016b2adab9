-- Keeps records of completed messages: at most `most`, and none that was completed before `oldest`. A key of another type
-- prevents no acknowledgement; the records of earlier messages of the ids are then removed.
local SURPLUS = 100 -- how many more than it adds one script removes
local DAY_MS = 86400000
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
  local surplus = redis.call('ZCARD', completedAt) - most
  local gone = {}
  if surplus > 0 then
    -- records with a future time first: such names of another program would stay, and push out the newly completed ones
    local ahead = '(' .. string.format('%.0f', now + DAY_MS)
    gone = namesOf(math.min(surplus, limit), function(many) return redis.call('ZRANGEBYSCORE', completedAt, ahead, '+inf', 'LIMIT', 0, many) end)
  end
  if surplus > 0 and #gone == 0 then
    gone = namesOf(math.min(surplus, limit), function(many) return redis.call('ZRANGE', completedAt, 0, many - 1) end)
  elseif surplus <= 0 and oldest then
    local before = '(' .. string.format('%.0f', oldest)
    gone = namesOf(limit, function(many) return redis.call('ZRANGEBYSCORE', completedAt, '-inf', before, 'LIMIT', 0, many) end)
  end
  if #gone > 0 then
    redis.call('HDEL', completed, unpack(gone))
    redis.call('ZREM', completedAt, unpack(gone))
  end
end
