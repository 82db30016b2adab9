-- The earliest due time in some schedules, or nil. Skips a key of another type. Removes names longer than `longest` at the heads: no
-- message has them, and each would be the first one until its time comes. After too many bytes of large names it returns 0 with the first
-- that it removes, so that the next script goes on. Also returns how many names it removed. Needs shared/names.lua.
local function earliest(schedules, longest)
  local first, removed = nil, 0
  for _, schedule in ipairs(schedules) do
    local head = redis.pcall('ZRANGE', schedule, 0, 0, 'WITHSCORES')
    while head[1] and #head[1] > largeNames.above do
      largeNames.bytes = largeNames.bytes + #head[1]
      if #head[1] <= longest then break end
      redis.call('ZREM', schedule, head[1])
      removed = removed + 1
      if largeNames.bytes > largeNames.most then return 0, removed end
      head = redis.pcall('ZRANGE', schedule, 0, 0, 'WITHSCORES')
    end
    local score = tonumber(head[2])
    if score and (not first or score < first) then first = score end
  end
  return first, removed
end
