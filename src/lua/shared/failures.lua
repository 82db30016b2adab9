-- Adds a line to what is known of a message's failed attempts; the oldest lines go when it becomes long.
local function noteFailure(failures, id, attempt, now, text)
  local lines = (redis.call('HGET', failures, id) or '') .. attempt .. ' ' .. string.format('%.0f', now) .. ' ' .. text .. '\n'
  while #lines > 8192 do
    local rest = string.find(lines, '\n', 1, true)
    if not rest or rest == #lines then break end
    lines = string.sub(lines, rest + 1)
  end
  redis.call('HSET', failures, id, lines)
end
