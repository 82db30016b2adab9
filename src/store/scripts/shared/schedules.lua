-- The earliest due time in some schedules, or nil; with `before`, any that is not later is enough. One of another type is passed over.
local function earliest(schedules, before)
  local first
  for _, schedule in ipairs(schedules) do
    local score = tonumber(redis.pcall('ZRANGE', schedule, 0, 0, 'WITHSCORES')[2])
    if score and (not first or score < first) then first = score end
    if before and first and first <= before then return first end
  end
  return first
end

-- Publishes that a message becomes visible at `at`, unless the waiting clients poll no later anyway: for another message or for a
-- tick. The script publishes before the change itself, so that an error (no right to publish) leaves everything as it was.
local function announce(schedules, ticks, channel, at)
  local first = earliest(schedules, at)
  if first and first <= at then return end
  local tick = earliest({ticks})
  if not tick or at < tick then redis.call('PUBLISH', channel, string.format('%.0f', at)) end
end
