-- Finds a message: its priority, when it is visible, and whether it is in flight; nil if it is nowhere. Needs shared/aside.lua.
local function locate(due, inFlight, id)
  for at, schedule in ipairs(due) do
    local score = redis.call('ZSCORE', schedule, id)
    if score then return at - 1, aside.whenOf(tonumber(score)), false end
  end
  for priority = 0, #due - 1 do
    local score = redis.call('ZSCORE', inFlight, (priority == 10 and 'g' or priority) .. id)
    if score then return priority, math.ceil(tonumber(score)), true end -- see shared/beforehand.lua
  end
end
