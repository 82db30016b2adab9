-- The first entry that has to stay: the last of those that all groups have acknowledged, as by it a reader finds out that nothing is missing.
-- None without a group, and with more than MOST_GROUPS. And how many groups there are.
local function firstKept(stream)
  local groups, count = groupsOf(stream)
  local lowest, isUnread
  for _, group in ipairs(groups) do
    local id = group.first or group.last
    if not lowest or isBefore(id, lowest) then
      lowest, isUnread = id, group.first ~= nil
    elseif id == lowest then
      isUnread = isUnread or group.first ~= nil
    end
  end
  local before = isUnread and redis.call('XREVRANGE', stream, '(' .. lowest, '-', 'COUNT', 1)[1]
  return before and before[1] or lowest, count
end

-- Removes what is before that entry. Returns how many groups there are.
local function trimChanges(stream)
  local first, count = firstKept(stream)
  if first then redis.call('XTRIM', stream, 'MINID', first) end
  return count
end
