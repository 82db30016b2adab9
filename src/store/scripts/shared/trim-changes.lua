-- The first entry that has to stay: the last one that all groups have acknowledged, by which a reader learns that nothing is missing.
-- None without a group, and with more than MOST_GROUPS. Also returns the number of groups.
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

-- Removes all earlier entries. Returns the number of groups.
local function trimChanges(stream)
  local first, count = firstKept(stream)
  if first then redis.call('XTRIM', stream, 'MINID', first) end
  return count
end
