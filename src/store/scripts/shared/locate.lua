-- Finds a message: its priority, when it is visible, and whether it is in flight; nil if it is nowhere. A record that is nowhere is what is
-- left of a message when another program, or an eviction, has deleted its place: no poll ever finds it. Needs shared/aside.lua.
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
