-- The earliest due time in some schedules, or nil. Skips a key of another type. With `longest`, removes a longer name at the head: no message
-- has it, and it would be read again and again until its time comes.
local function earliest(schedules, longest)
  local first
  for _, schedule in ipairs(schedules) do
    local head = redis.pcall('ZRANGE', schedule, 0, 0, 'WITHSCORES')
    if longest and head[1] and #head[1] > longest then
      redis.call('ZREM', schedule, head[1])
      head = redis.pcall('ZRANGE', schedule, 0, 0, 'WITHSCORES')
    end
    local score = tonumber(head[2])
    if score and (not first or score < first) then first = score end
  end
  return first
end

-- Publishes that a message becomes visible at `at`, unless the waiting clients poll no later anyway: for another message or for a
-- tick. The script publishes before the change itself, so that an error (no right to publish) leaves everything as it was.
-- It counts earlier members instead of reading the first one, which can be of any size. A member of more than 365 days ago, such as one at -inf, does not
-- count: it comes from another program, which announced nothing. Later ones do, because the announcement of a later time puts off what clients wait for.
local function announce(schedules, ticks, channel, at, now)
  local text, oldest = string.format('%.0f', at), now - 31536000000
  if oldest < 0 or oldest > at then oldest = 0 end
  local function isAny(schedule)
    local count = redis.pcall('ZCOUNT', schedule, oldest, text)
    return type(count) == 'number' and count > 0
  end
  for _, schedule in ipairs(schedules) do
    if isAny(schedule) then return end
  end
  if not isAny(ticks) then redis.call('PUBLISH', channel, text) end
end
