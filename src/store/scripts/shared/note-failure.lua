-- Adds a line to the history of a message's failed attempts, and removes the oldest lines if it becomes long. If the key is of another
-- type, the script goes on without the history.
local function noteFailure(failures, id, attempt, now, text)
  local known = historyOf(failures, id)
  if not known then return end
  local line = attempt .. ' ' .. string.format('%.0f', now) .. ' ' .. text .. '\n'
  local progress = progressIn(known)
  known = string.sub(known, #progress + 1)
  local excess = #known + #line - 8192
  if excess > 0 then
    local cut = string.find(known, '\n', excess, true)
    known = cut and string.sub(known, cut + 1) or ''
  end
  redis.call('HSET', failures, id, progress .. known .. line)
end
