-- Adds a line to what is known of a message's failed attempts; the oldest lines go when it becomes long. Without this history,
-- where its key is of another type, the rest goes on. A history so long that no script has written it is dropped unread.
local function noteFailure(failures, id, attempt, now, text)
  local line = attempt .. ' ' .. string.format('%.0f', now) .. ' ' .. text .. '\n'
  local size = redis.pcall('HSTRLEN', failures, id)
  if type(size) == 'table' then return end
  local known = size > 0 and size <= 65536 and redis.call('HGET', failures, id) or ''
  local excess = #known + #line - 8192
  if excess > 0 then
    local cut = string.find(known, '\n', excess, true)
    known = cut and string.sub(known, cut + 1) or ''
  end
  redis.call('HSET', failures, id, known .. line)
end
