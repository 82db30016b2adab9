-- Publishes that a message becomes visible at `at`, unless the waiting clients poll no later anyway: for another message or for a
-- tick. The script publishes before the change itself, so that an error (no right to publish) leaves everything as it was.
-- It counts earlier members instead of reading the first one, which can be of any size. Needs shared/oldest-due.lua.
local function announce(schedules, ticks, channel, at, now)
  local text, oldest = string.format('%.0f', at), oldestDue(now, at)
  local function isAny(schedule)
    local count = redis.pcall('ZCOUNT', schedule, oldest, text)
    return type(count) == 'number' and count > 0
  end
  for _, schedule in ipairs(schedules) do
    if isAny(schedule) then return end
  end
  if not isAny(ticks) then redis.call('PUBLISH', channel, text) end
end
