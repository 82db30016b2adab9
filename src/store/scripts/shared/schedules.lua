-- The earliest due time in some schedules, or nil. Skips a key of another type. With `longest`, removes a longer name at the head: no message
-- has it, and it would be read again and again until its time comes. After too many bytes of them it returns 0, so that the next call continues.
-- Also returns how many names it removed.
local function earliest(schedules, longest)
  local first, bytes, removed = nil, 0, 0
  for _, schedule in ipairs(schedules) do
    local head = redis.pcall('ZRANGE', schedule, 0, 0, 'WITHSCORES')
    if longest and head[1] and #head[1] > longest then
      redis.call('ZREM', schedule, head[1])
      bytes, removed = bytes + #head[1], removed + 1
      if bytes > 1048576 then return 0, removed end
      head = redis.pcall('ZRANGE', schedule, 0, 0, 'WITHSCORES')
    end
    local score = tonumber(head[2])
    if score and (not first or score < first) then first = score end
  end
  return first, removed
end
