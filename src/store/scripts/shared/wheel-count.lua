-- Counts at most 500 buckets from a rank on, fewer if names of other programs are large: the messages that are not cancelled, those of them
-- whose minute has begun, and the rank to go on from, or nil. The counts are approximate: cancelled messages of a bucket that is being
-- promoted may have left the list already, and a cancelled message that was lost was not in it.
local function countBuckets(wheel, from, now)
  local count, overdue, page = 0, 0, 500
  local minutes = namesOf(page, function(many, skipped) return redis.pcall('ZRANGE', wheel, from + skipped, from + skipped + many - 1) end)
  if minutes.err then return 0, 0, nil end
  for _, minute in ipairs(minutes) do
    minute = #minute < 13 and tonumber(minute) and minute or '0' -- another program can have written any other name
    local length = redis.pcall('LLEN', wheelKey(wheel, 'wheel-' .. minute))
    local gone = redis.pcall('SCARD', wheelKey(wheel, 'gone-' .. minute))
    local left = math.max(0, (tonumber(length) or 0) - (tonumber(gone) or 0))
    count = count + left
    if tonumber(minute) * MINUTE <= now then overdue = overdue + left end
  end
  local rank = from + #minutes
  return count, overdue, #minutes > 0 and redis.call('ZCARD', wheel) > rank and rank or nil
end
